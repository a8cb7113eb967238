package http

import "net"

// Serve serves on a listener, as Start does on its own.
func Serve(s *Server, listener net.Listener) { s.serve(listener) }
