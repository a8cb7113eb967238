package embedded

// SyncsEveryWrite reports whether the running server syncs each write of a stream to disk before it acknowledges it.
func (s *Server) SyncsEveryWrite() bool { return s.current.Load().nats.JetStreamConfig().SyncAlways }
