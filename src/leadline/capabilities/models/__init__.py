"""Providers of the model seam that core/llm defines."""
