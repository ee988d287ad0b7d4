"""Deep research: ledger, methods, verification, report."""
