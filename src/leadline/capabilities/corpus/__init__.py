"""Folders and files of the user as a searchable set of documents, each with its outcome."""
