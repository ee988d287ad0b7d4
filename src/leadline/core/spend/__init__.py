"""What calls cost, and how many may be under way: budgets, prices, the meter, and the lines before each model."""
