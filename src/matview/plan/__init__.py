"""What is stored for a view, and how it is brought up to date: decided here, without side effects. Pure."""
