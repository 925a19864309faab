"""The codecs of record batches, and work on compressed records in bounded memory."""
