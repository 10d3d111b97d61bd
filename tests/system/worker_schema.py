"""worker_schema.py SCHEMA REPORT...: each report against the schema (python3-jsonschema)."""
import json
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as f:
    schema = json.load(f)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
bad = 0
for name in sys.argv[2:]:
    with open(name, encoding="utf-8") as f:
        report = json.load(f)
    for error in validator.iter_errors(report):
        print(f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
        bad += 1
sys.exit(1 if bad else 0)
