def write_report(a, b): pass
