START, END = "<!-- tables: python -m experiments.whole -->\n", "<!-- end of tables -->\n"


def draw(data, folder): ...
def tables(data):
    return ""
