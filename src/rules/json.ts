/** Any value that JSON can carry. Everything Errand stores, sends or hashes is one of these. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
