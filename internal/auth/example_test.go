package auth_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tutti/internal/auth"
	"tutti/internal/core"
)

func ExampleKeys() {
	ctx := context.Background()
	keys, err := auth.NewKeys(&keyStore{}, auth.KeysConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	key, text, err := keys.Create(ctx, "the portal", []string{"TEST-CA.WRITE"}, time.Time{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.HasPrefix(text, "tutti_"+key.ID+"_"))

	authenticator := auth.New(keys, nil, nil)
	who, err := authenticator.Authenticate(ctx, text)
	fmt.Println(who.Name, who.MayWrite("TEST-CA"), who.MayWrite("TEST-US"), err)

	if _, err := keys.Revoke(ctx, key.ID); err != nil {
		fmt.Println(err)
		return
	}
	_, err = authenticator.Authenticate(ctx, text)
	fmt.Println(core.MessageOf(err))
	// Output:
	// true
	// the portal true false <nil>
	// the API key was revoked
}
