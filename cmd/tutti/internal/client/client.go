package client

// Client calls one server. Create it with New. It is safe for concurrent use. Its errors are *core.Error: those of the server have the
// code, message, hint, error id and violations of its problem and wrap an *ResponseError; CodeUnavailable when the server does not
// answer; CodeInvalid for an id that cannot be part of a path.
type Client struct{ *transport }

// New returns a Client without connecting. CodeInvalid for an invalid server URL, token or CA file.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	base, err := parseServer(cfg.Server)
	if err != nil {
		return nil, err
	}
	if cfg.HTTP == nil {
		if cfg.HTTP, err = newHTTPClient(cfg.CAFile); err != nil {
			return nil, err
		}
	}
	own := *cfg.HTTP
	own.CheckRedirect = sameOrigin
	return &Client{&transport{cfg: cfg, base: base, http: &own}}, nil
}

// Server returns the server's URL.
func (c *Client) Server() string { return c.base.String() }
