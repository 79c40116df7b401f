"""The paper's story, live: a chain of sporting-goods stores is maintained while three analysts read (Figure 2)."""
