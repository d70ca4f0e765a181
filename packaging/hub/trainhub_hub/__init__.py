"""TrainHub as an installed package. The project lies in the folder `app`, so that nothing of it is a name
that other packages of the same environment could have."""
