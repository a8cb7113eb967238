package check

import "net/url"

// hostOf returns the host of a URL, without credentials and path.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "its address"
	}
	return u.Host
}
