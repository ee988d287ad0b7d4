"""From the writer's structured report to numbered citations, Markdown, HTML and JSON."""
