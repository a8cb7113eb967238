package server

// ConnectionLimits returns the limits of a Server in a process that may open files files.
func ConnectionLimits(cfg Config, files int) (total, perAddress, monitoring int) {
	l := newConnLimits(cfg, files)
	return l.total, l.perAddress, l.monitoring
}
