package http

import "net"

// Serve serves on a listener, as Start does on its own.
func Serve(s *Server, listener net.Listener) { s.serve(listener) }

// ConnectionLimits returns the limits of a Server of a process that may have so many files open.
func ConnectionLimits(cfg ServerConfig, files int) (total, perAddress, reserve int) {
	l := newConnLimits(cfg, files)
	return l.total, l.perAddress, l.reserve
}
