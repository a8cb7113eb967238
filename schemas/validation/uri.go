package validation

import (
	"net/netip"
	"regexp"
	"strings"
	"unicode/utf8"
)

// uriFormats are the formats of RFC 3986 and RFC 3987, which the library's parser checks only in part: it accepts characters that a URI must
// encode.
func uriFormats() map[string]func(any) bool {
	format := func(absolute, international bool) func(any) bool {
		return func(v any) bool {
			text, ok := v.(string)
			return !ok || isURI(text, absolute, international)
		}
	}
	return map[string]func(any) bool{
		"uri": format(true, false), "uri-reference": format(false, false), "uriref": format(false, false),
		"iri": format(true, true), "iri-reference": format(false, true),
	}
}

// The parts of a URI as in RFC 3986, appendix B, and what two of them contain.
var (
	uriParts  = regexp.MustCompile(`(?s)^(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$`)
	uriScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	uriFuture = regexp.MustCompile(`^[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+$`)
	uriPort   = regexp.MustCompile(`^(?::[0-9]*)?$`)
)

// isURI reports whether text is a URI or, unless absolute, a reference; international allows the characters of an IRI.
func isURI(text string, absolute, international bool) bool {
	m := uriParts.FindStringSubmatchIndex(text)
	if m == nil {
		return false
	}
	part := func(i int) (string, bool) {
		if m[2*i] < 0 {
			return "", false
		}
		return text[m[2*i]:m[2*i+1]], true
	}
	scheme, hasScheme := part(1)
	authority, hasAuthority := part(2)
	path, _ := part(3)
	query, _ := part(4)
	fragment, _ := part(5)
	switch {
	case hasScheme && !uriScheme.MatchString(scheme), absolute && !hasScheme:
		return false
	case strings.HasPrefix(text, ":"):
		return false // the first segment of a relative path has no colon
	case hasAuthority && !isAuthority(authority, international):
		return false
	}
	return onlyURI(path, ":@/", international, false) && onlyURI(query, ":@/?", international, true) && onlyURI(fragment, ":@/?", international, false)
}

func isAuthority(text string, international bool) bool {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		if !onlyURI(text[:i], ":", international, false) {
			return false
		}
		text = text[i+1:]
	}
	if literal, ok := strings.CutPrefix(text, "["); ok {
		address, port, closed := strings.Cut(literal, "]")
		ip, err := netip.ParseAddr(address)
		return closed && uriPort.MatchString(port) && (err == nil && ip.Is6() && ip.Zone() == "" || uriFuture.MatchString(address))
	}
	port := ""
	if i := strings.IndexByte(text, ':'); i >= 0 {
		text, port = text[:i], text[i:]
	}
	return uriPort.MatchString(port) && onlyURI(text, "", international, false)
}

// onlyURI reports whether text has only unreserved characters, sub-delimiters, percent-encoded bytes and those of more.
func onlyURI(text, more string, international, private bool) bool {
	for i, r := range text {
		switch {
		case r == '%':
			if i+3 > len(text) || !isHex(text[i+1]) || !isHex(text[i+2]) {
				return false
			}
		case r >= utf8.RuneSelf:
			if !international || !isIRIChar(r) && (!private || !isPrivateChar(r)) {
				return false
			}
		case r >= '0' && r <= '9', r|0x20 >= 'a' && r|0x20 <= 'z', strings.ContainsRune("-._~!$&'()*+,;=", r), strings.ContainsRune(more, r):
		default:
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// isIRIChar reports whether r is a ucschar of RFC 3987, section 2.2.
func isIRIChar(r rune) bool {
	switch {
	case r < 0xA0, r >= 0xD800 && r < 0xF900, r >= 0xFDD0 && r < 0xFDF0, r >= 0xFFF0 && r < 0x10000:
		return false
	default:
		return r < 0xF0000 && r&0xFFFE != 0xFFFE && (r < 0xE0000 || r >= 0xE1000)
	}
}

// isPrivateChar reports whether r is an iprivate of RFC 3987, section 2.2.
func isPrivateChar(r rune) bool {
	return r >= 0xE000 && r < 0xF900 || r >= 0xF0000 && r&0xFFFE != 0xFFFE
}
