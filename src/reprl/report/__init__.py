"""Reports: one self-contained HTML page for a run or an audit."""

from reprl.report.write import write_report as write_report
