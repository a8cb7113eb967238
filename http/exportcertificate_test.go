package http

import "crypto/tls"

// CurrentCertificate returns what new connections are answered with.
func CurrentCertificate(c *Certificate) *tls.Certificate { return c.current.Load() }
