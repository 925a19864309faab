"""`odradek completion`: what a shell may put behind what was typed, from the cluster, too."""
