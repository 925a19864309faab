"""The demo: real flights through a broker and Spark, checked and drawn."""
