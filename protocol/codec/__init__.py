"""How a message becomes bytes and back: wire types, generated codecs, what decoding may cost."""
