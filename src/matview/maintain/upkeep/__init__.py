"""What keeps a warehouse in order: leases kept alive, what crashed undone, overlays folded, garbage collected."""
