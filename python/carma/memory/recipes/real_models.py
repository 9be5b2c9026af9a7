def real_model(recipe): raise ValueError("not yet")
