from tests.torture.contract import Part
PART = Part("faults", "faults", 0, lambda n, f: "", 1.0, lambda n: "")
def warm(): pass
