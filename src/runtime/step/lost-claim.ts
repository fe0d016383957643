/** The claim is gone: another holder has it, or the store says so. Whoever held it stops without another write (L4). */
export class LostClaim extends Error {
  override readonly name = "LostClaim";
}
