"""Measurements of answer quality on public documents and on folders written for the purpose."""
