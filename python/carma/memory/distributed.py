def install(session, patches): pass
