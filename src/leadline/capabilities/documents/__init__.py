"""Bytes of a file or a web page become stored text with pages, title and date, or a reason why not."""
