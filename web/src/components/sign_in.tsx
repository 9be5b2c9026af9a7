// The form for a token.

import { useState } from "preact/hooks";
import { signIn, token } from "../api/session";

export function SignIn() {
  const [given, setGiven] = useState("");
  const refused = token.get() !== null;
  return (
    <form
      class="sign-in"
      onSubmit={event => {
        event.preventDefault();
        if (given.trim()) signIn(given.trim());
      }}
    >
      <h1>Sign in</h1>
      <p>
        Run <code>carma web</code> on the server: it prints an address that signs you in. Over the network, enter the token that an operator
        gave you.
      </p>
      {refused && (
        <p class="notice bad" role="alert">
          The manager does not accept this token.
        </p>
      )}
      <label>
        Token
        <input
          type="password"
          autocomplete="current-password"
          required
          value={given}
          onInput={event => setGiven(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary">
        Sign in
      </button>
      <p class="quiet">The browser keeps the token until you close this tab.</p>
    </form>
  );
}
