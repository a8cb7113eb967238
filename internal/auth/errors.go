package auth

import "tutti/internal/core"

func unauthenticated(message, hint string) error {
	return &core.Error{Code: core.CodeUnauthenticated, Message: message, Hint: hint}
}

// errUnknownKey is the same for a key that never was and for one whose secret is wrong.
func errUnknownKey() error {
	return unauthenticated("the API key is not known", "see that it was copied whole: it begins with "+keyPrefix)
}
