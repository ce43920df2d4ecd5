import { inject, injectable } from "inversify";

@injectable()
export class Store {
  find = () => "found by the store";
}

@injectable()
export class Service {
  constructor(@inject(Store) private readonly store: Store) {}

  find() {
    return this.store.find();
  }
}
