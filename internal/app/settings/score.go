package settings

import (
	"tutti/internal/config"
	"tutti/internal/upstream/score"
)

// Score returns the settings of the client of Score.
func Score(c config.Storage, version string) score.Config {
	return score.Config{
		URL: c.URL, Token: c.Token.Reveal(), Timeout: c.Timeout, UserAgent: "tutti/" + version, TLS: c.TLS.Files("schemas.storage"),
	}
}
