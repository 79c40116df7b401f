"""What a set of definitions would make of what is there, and whether that would be legal; nothing is done.

A text says how things should be. CREATE of what is not there makes it; of what is there and is just so, it changes
nothing; of a view or viewgroup that is there and differs, it alters it. A table that differs stands in the way.
ALTER and DROP mean what they always do. The rules are held against what all statements together lead to.
"""
