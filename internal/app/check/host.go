package check

import "net/url"

// hostOf names the host of a URL, without what else it holds.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "its address"
	}
	return u.Host
}
