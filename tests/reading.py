"""What the rules of stage "read" find in a workload."""

from lab_utils.dry_run.engine import Silent, apply_rules
from lab_utils.dry_run.records import Stage


def findings_of(workload, cores=8):
    """Its findings; raises CannotLower where its step cannot be built."""
    findings = []
    for facts in workload.facts(workload.trace(cores), cores):
        findings += apply_rules(facts, Stage.READ, Silent())
        if facts.refused:
            raise facts.refused
    return findings
