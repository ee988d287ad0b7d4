"""The embedded default: research by extraction, without a language model."""
