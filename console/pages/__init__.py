"""The pages: each module has the addresses of one part of the console, and its templates beside
it in `templates/`.

A page reads its parameters, asks the cluster, and renders; what is refused on the way is explained
in one place (`explaining.py`). What changes anything is a POST with `read_form`.
"""
