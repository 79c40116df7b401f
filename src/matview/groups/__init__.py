"""Views with different policies that never contradict one another: viewgroups, their rules, schedules and states."""
