"""Autonomous sources (paper M): capture, the first state, and subqueries evaluated in state old; one engine, one package."""
