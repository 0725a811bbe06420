"""What this computer offers the harness: packages, programs, boards, ports and probes, and what is missing for what."""
