import sys

from harness.sim.host.supervisor import main

sys.exit(main())
