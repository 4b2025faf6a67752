from package.train import main

main()
