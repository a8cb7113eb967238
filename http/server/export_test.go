package server

// ConnectionLimits returns the limits of a Server of a process that may have so many files open.
func ConnectionLimits(cfg Config, files int) (total, perAddress, reserve int) {
	l := newConnLimits(cfg, files)
	return l.total, l.perAddress, l.reserve
}
