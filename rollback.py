"""Every host back to what ran before its present release. Needs no settings, so it works when they are broken.

pyinfra inventory/prod.py rollback.py --dry      what each host would go back to
pyinfra inventory/prod.py rollback.py            all hosts at once; each proves that its server answers again
"""

from roles import rollback

rollback.go_back(fleet=rollback.look())
