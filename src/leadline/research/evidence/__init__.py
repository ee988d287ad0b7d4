"""How a unit comes by evidence: governed source tools, the quote tool, and the log they write to."""
