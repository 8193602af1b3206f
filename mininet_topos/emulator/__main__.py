"""python -m mininet_topos.emulator: see `process`."""

from mininet_topos.emulator.process import main

raise SystemExit(main())
