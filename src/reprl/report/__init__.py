"""Reports: one self-contained HTML page for a run, an audit or a comparison."""

from reprl.report.write import write_report as write_report
