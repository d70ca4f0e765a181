// A real provider of OpenID Connect for one client: node provider.mjs PORT REDIRECT_URI ACCOUNTS_FILE FOLDER_OF_OIDC_PROVIDER
// ACCOUNTS_FILE is read for each sign-in: {"ada": {"sub": "…", "email": "…", "groups": […]}}; every password is right.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [port, redirectUri, accountsFile, folder] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${folder}/node_modules/oidc-provider/lib/index.js`));
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "trainhub", client_secret: "of-tests-only", redirect_uris: [redirectUri] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "preferred_username"], groups: ["groups"] },
  scopes: ["openid", "profile", "email", "groups"],
  pkce: { required: () => true },
  conformIdTokenClaims: false,
  features: { devInteractions: { enabled: true } },
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({ sub: name, ...JSON.parse(readFileSync(accountsFile))[name] }),
  }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
