// What src/rules may use of the platform. Seen only by tsconfig.pure.json; everything else sees Node's own types.
declare module "node:crypto" {
  export function hash(algorithm: "sha256", data: string | Uint8Array, encoding: "hex"): string;
}
