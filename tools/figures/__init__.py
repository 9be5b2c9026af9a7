"""The tables of figures in the documents: what they are made by, and how they are made again."""
